-- When a trial was queued last. Of those that wait already, what is known is when their experiment
-- was submitted.
ALTER TABLE trials ADD COLUMN queue_time INTEGER NOT NULL DEFAULT 0;
UPDATE trials SET queue_time = (SELECT create_time FROM experiments WHERE key = trials.experiment)
  WHERE state = 1;
DROP INDEX trials_queued;
CREATE INDEX trials_queued ON trials (queue_time) WHERE state = 1;
