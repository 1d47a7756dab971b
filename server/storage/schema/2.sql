-- What the scheduler must know of a trial's past after a restart: the class and step of its last
-- failure, how often it was preempted, the largest pack that it may be in (0: any).
ALTER TABLE trials ADD COLUMN failure TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN failure_step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN preemptions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN pack_limit INTEGER NOT NULL DEFAULT 0;
-- Trials of a lease when it was granted; 0 where that is not known.
ALTER TABLE leases ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
