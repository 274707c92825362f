CREATE TABLE customer (
    rid {row},
    id {id} NOT NULL,
    name {text} NOT NULL,
    name_key {text} NOT NULL,
    address {text},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX customer__id ON customer (id);
CREATE INDEX customer__name_key__id ON customer (name_key, id);
