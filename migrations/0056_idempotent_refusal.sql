-- When an answer was kept that is a refusal: those of one caller are counted, so that nobody fills the table without changing
-- anything.
ALTER TABLE idempotent_answer ADD COLUMN refused_on {time};
CREATE INDEX idempotent_answer__caller__refused_on ON idempotent_answer (caller, refused_on) WHERE refused_on IS NOT NULL;
