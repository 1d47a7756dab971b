# %% [markdown]
# Which positional encoding still sorts at unseen lengths? Submits a small grid, watches it, and compares.
# Runs as a script, or cell by cell in an editor that knows `# %%`. It needs a server and a worker, and their address where
# the command line has no configuration file:
#
#     LENGTHWISE_SERVER=127.0.0.1:7070 python python/examples/compare_encodings.py

# %%
import lengthwise

client = lengthwise.Client()

# %% One model for each encoding and seed.
experiment = client.submit(
    {
        "name": "compare",
        "tasks": "bucket_sort",
        "networks": [{"name": "encoder", "blocks": 1, "heads": 4, "d_model": 32}],
        "encodings": ["none", "sin_cos", {"name": "sin_cos", "randomized": True, "max_position": 256}],
        "learning_rates": 1e-3,
        "seeds": "0..1",
        "training": {"steps": 300, "batch_size": 32, "lengths": "1..10", "report_every_steps": 20},
        "evaluation": {"lengths": "5..30 step 5", "sequences": 100, "attention_lengths": [10]},
    }
)
print(experiment)

# %% Events come once and in order, also when the server restarts meanwhile.
for event in experiment.watch():
    match event:
        case lengthwise.StateChange(new="FAILED", trial=trial, reason=reason):
            print(f"{trial.rpartition('/')[2]}: failed: {reason}")
        case lengthwise.LengthAccuracies(final=True, trial=trial, lengths=lengths, accuracies=accuracies):
            print(f"{trial.rpartition('/')[2]}: {accuracies[-1]:.2f} at length {lengths[-1]}")

# %% The mean over the seeds of each encoding.
results = experiment.results()
columns = ["encoding", "succeeded", "seen_accuracy", "unseen_accuracy", "unseen_accuracy_deviation"]
print(results[columns].round(3).to_string(index=False))

# %% Accuracy by length.
accuracies = experiment.accuracies()
print(accuracies.pivot_table(index="encoding", columns="length", values="accuracy").round(2))

# %% What the best model looks at, and its weights. Its encoding is chosen by the lengths that test it, so its accuracy
# there is no estimate for other data.
best = experiment.trial(results.sort_values("unseen_accuracy")["best_trial"].iloc[-1])
(attention,) = best.attention_maps(length=10)
print(f"{best.id}: attention {attention.probabilities.shape} (layers, heads, queries, keys)")
weights = best.model()
print(f"{sum(values.size for values in weights.values()):,} parameters in {len(weights)} tensors")
