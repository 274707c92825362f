-- What a process is called from outside, so that those that differ are found out. An older program's is empty.
ALTER TABLE process ADD COLUMN public_url {text} NOT NULL DEFAULT '';
