-- The floor of the schema: the oldest program that it serves, by the newest schema version that the program knows. A program
-- that knows less ends with a sentence. A job raises the floor once no older program is connected.
CREATE TABLE schema_floor (
    floor {int} NOT NULL PRIMARY KEY
) {clustered};
INSERT INTO schema_floor (floor) VALUES (0);
