-- How many workers in a row were lost with a trial, without a new checkpoint since the first.
ALTER TABLE trials ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;
