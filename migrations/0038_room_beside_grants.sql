-- A use of a refresh token changes no column that an index holds. With room beside it in its page the row is changed in place,
-- no index is written, and uses of neighbouring grants do not meet in an index's pages.
{on_postgres} ALTER TABLE sign_in_grant SET (fillfactor = 70);
