-- The zone in which a person reads times, and whether single letters act: empty where nothing was chosen.
ALTER TABLE console_preference ADD COLUMN zone {text} NOT NULL DEFAULT '';
ALTER TABLE console_preference ADD COLUMN single_keys {text} NOT NULL DEFAULT '';
