-- An erasure looks for the newest answer of its store that can show a person.
CREATE INDEX idempotent_answer__shows_of__started_on ON idempotent_answer (shows_of, started_on) WHERE shows_of IS NOT NULL;
