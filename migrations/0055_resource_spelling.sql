-- A resource's name in the form by which two are the same (RFC 3986, sections 6.2.2 and 6.2.3). A row of the release before has
-- none until the next start, and is found by its name alone.
ALTER TABLE resource_owner ADD COLUMN normal_key {text};
CREATE INDEX resource_owner__normal_key ON resource_owner (normal_key);
