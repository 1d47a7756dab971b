-- Workers that get no new leases, and why; '' for all.
CREATE TABLE holds (
  worker TEXT PRIMARY KEY,
  why    TEXT NOT NULL
) WITHOUT ROWID;
