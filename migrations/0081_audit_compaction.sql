-- The audit entries that may have contents from before these were compressed: those after `position`, up to `last`. The job
-- `compacting` compresses them in pieces; then the table is empty.
CREATE TABLE audit_compaction (position {int} NOT NULL, last {int} NOT NULL);
INSERT INTO audit_compaction (position, last)
    SELECT (SELECT min(rid) FROM audit_entry) - 1, (SELECT max(rid) FROM audit_entry) WHERE EXISTS (SELECT 1 FROM audit_entry);
