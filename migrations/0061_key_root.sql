-- What keys of the installation are derived from, such as those of digests: sealed under the master key, so that the master key can
-- become another while they stay. It is the first master key itself, from which the release before derives.
CREATE TABLE key_root (
    id {int} NOT NULL PRIMARY KEY,
    sealed {bytes} NOT NULL,
    created_on {time} NOT NULL
);
