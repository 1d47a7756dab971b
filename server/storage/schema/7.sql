-- Artifacts that may no longer be needed (SweepRecord of records.h).
CREATE TABLE sweeps (
  key        INTEGER PRIMARY KEY,
  experiment TEXT NOT NULL,
  trial      TEXT NOT NULL,
  sha256     TEXT NOT NULL,
  attempt    INTEGER NOT NULL
);
