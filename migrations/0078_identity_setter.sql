-- Who linked an identity, unless it was the person or the server itself, and when. Those of groups have the same columns.
ALTER TABLE application_identity ADD COLUMN set_by {id};
ALTER TABLE application_identity ADD COLUMN set_on {time};
ALTER TABLE application_group_identity ADD COLUMN set_by {id};
ALTER TABLE application_group_identity ADD COLUMN set_on {time};
