-- What was applied, so that a program with another text of the same number finds out. A row without it
-- is from a release that kept none, and gets it at the next start.
ALTER TABLE schema_migration ADD COLUMN checksum {text};
