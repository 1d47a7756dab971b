-- What each owner has used since there is this table, by deleted experiments as well.
CREATE TABLE usage (
  owner       TEXT PRIMARY KEY,
  trials      INTEGER NOT NULL DEFAULT 0,  -- that were started
  steps       INTEGER NOT NULL DEFAULT 0,  -- up to the newest checkpoints
  worker_time INTEGER NOT NULL DEFAULT 0   -- microseconds of leases
) WITHOUT ROWID;
-- The owner of a lease's trials when it was granted; '' where that is not known.
ALTER TABLE leases ADD COLUMN owner TEXT NOT NULL DEFAULT '';
-- How long the artifacts stay after the experiment's end, in microseconds (0: as long as the server
-- says, -1: forever), and the end after which they were last deleted.
ALTER TABLE experiments ADD COLUMN retention INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN expired_end INTEGER NOT NULL DEFAULT 0;
-- All that FindExpired reads: in a row, these columns are behind the specification.
CREATE INDEX experiments_kept ON experiments (key, id, end_time, expired_end, retention)
  WHERE end_time > 0 AND end_time <> expired_end;
