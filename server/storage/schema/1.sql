CREATE TABLE experiment_names (
  name        TEXT PRIMARY KEY,
  last_number INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE experiments (
  key                 INTEGER PRIMARY KEY AUTOINCREMENT,
  id                  TEXT NOT NULL UNIQUE,
  name                TEXT NOT NULL,
  request_id          TEXT UNIQUE,
  request_fingerprint TEXT NOT NULL,
  owner               TEXT NOT NULL,
  priority            INTEGER NOT NULL,
  specification       BLOB NOT NULL,  -- v1.ExperimentSpecification
  source              BLOB NOT NULL,  -- v1.SpecificationText
  create_time         INTEGER NOT NULL,
  end_time            INTEGER NOT NULL DEFAULT 0,
  -- Trials by state.
  queued              INTEGER NOT NULL DEFAULT 0,
  running             INTEGER NOT NULL DEFAULT 0,
  succeeded           INTEGER NOT NULL DEFAULT 0,
  failed              INTEGER NOT NULL DEFAULT 0,
  cancelled           INTEGER NOT NULL DEFAULT 0
);

-- What the trials of one pack key share.
CREATE TABLE packs (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment    INTEGER NOT NULL REFERENCES experiments (key),
  pack_key      TEXT NOT NULL,
  specification BLOB NOT NULL,  -- v1.TrialSpecification without learning rate and seeds
  task          TEXT NOT NULL,
  network       TEXT NOT NULL,
  encoding      TEXT NOT NULL
);
CREATE INDEX packs_by_experiment ON packs (experiment);

CREATE TABLE trials (
  key             INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment      INTEGER NOT NULL REFERENCES experiments (key),
  idx             INTEGER NOT NULL,
  id              TEXT NOT NULL,
  pack            INTEGER NOT NULL REFERENCES packs (key),
  learning_rate   REAL NOT NULL,
  weight_seed     INTEGER NOT NULL,
  data_seed       INTEGER NOT NULL,
  state           INTEGER NOT NULL,  -- v1.TrialState
  reason          TEXT NOT NULL,
  attempt         INTEGER NOT NULL DEFAULT 0,
  failures        INTEGER NOT NULL DEFAULT 0,
  not_before      INTEGER NOT NULL DEFAULT 0,
  worker          TEXT NOT NULL DEFAULT '',
  token           INTEGER NOT NULL DEFAULT 0,
  checkpoint_step INTEGER NOT NULL DEFAULT 0,
  start_time      INTEGER NOT NULL DEFAULT 0,
  end_time        INTEGER NOT NULL DEFAULT 0,
  outcome         BLOB NOT NULL DEFAULT x''  -- v1.Outcome
);
CREATE UNIQUE INDEX trials_by_index ON trials (experiment, idx);
CREATE UNIQUE INDEX trials_by_id ON trials (experiment, id);
CREATE INDEX trials_queued ON trials (key) WHERE state = 1;
CREATE INDEX trials_running ON trials (key) WHERE state = 2;
CREATE INDEX trials_cancelled ON trials (token) WHERE state = 5 AND token > 0;

CREATE TABLE events (
  position   INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment INTEGER NOT NULL,
  trial      INTEGER NOT NULL REFERENCES trials (key),
  attempt    INTEGER NOT NULL,
  sequence   INTEGER NOT NULL,  -- 0: made by the server
  step       INTEGER NOT NULL,
  kind       INTEGER NOT NULL,  -- field number in v1.Event
  payload    BLOB NOT NULL      -- v1.Event without the fields above
);
CREATE INDEX events_by_experiment ON events (experiment, position);
CREATE INDEX events_by_kind ON events (trial, kind);
CREATE UNIQUE INDEX events_by_sequence ON events (trial, attempt, sequence) WHERE sequence > 0;

-- Leases that have not ended; their trials carry the token.
CREATE TABLE leases (
  token      INTEGER PRIMARY KEY AUTOINCREMENT,
  worker     TEXT NOT NULL,
  grant_time INTEGER NOT NULL
);
