-- What packs of one experiment share, so that each length is stored once.
CREATE TABLE shared (
  key           INTEGER PRIMARY KEY,
  experiment    INTEGER NOT NULL REFERENCES experiments (key),
  specification BLOB NOT NULL  -- v1.TrialSpecification, which the pack's own completes
);
CREATE INDEX shared_by_experiment ON shared (experiment);
-- 0: the pack's own specification is complete.
ALTER TABLE packs ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;
