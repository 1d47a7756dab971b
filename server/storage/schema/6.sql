-- How often servers have opened the database; one row. It belongs to the server that read this
-- number when it opened it.
CREATE TABLE owner (
  epoch INTEGER NOT NULL
);
INSERT INTO owner VALUES (0);
