# %% [markdown]
# Table 2 and the analyses of "The Importance of Positional Encoding Initialization in Transformers for Relational Reasoning"
# (Ito et al.), scaled down to seconds: does it matter how large a learned encoding is at first?
# Runs as a script, or cell by cell in an editor that knows `# %%`. It trains on this machine and needs no server:
#
#     python python/examples/latin_square.py

# %%
import lengthwise

experiment = lengthwise.run(
    {
        "name": "latin_square",
        "protocol": "latin_square",
        "networks": {"name": "layerwise_encoder", "blocks": 2, "heads": 1, "d_model": 48},
        "encodings": [
            {"name": "sin_cos_2d", "label": "2d_fixed"},
            {"name": "learned", "max_position": 16, "distribution": "normal", "stddev": 0.2, "label": "learn_0.2"},
            {"name": "learned", "max_position": 16, "distribution": "normal", "stddev": 2.0, "label": "learn_2.0"},
        ],
        "learning_rates": 1e-3,
        "seeds": [2235, 6312],
        "training": {"epochs": 2, "report_every_steps": 7},
        "evaluation": {
            "every_steps": 21, "attention_lengths": "1..3", "attention_sequences": 12, "embedding_noise": [0.1, 0.5, 1],
            "training_examples": 500,
        },
    },
    data_dir="runs",
)  # fmt: skip

# %% Accuracy on the puzzles of training and on others.
results = experiment.results(all=True)
print(results[["encoding", "training_accuracy", "unseen_accuracy"]].round(3).to_string(index=False))

# %% How it came about: validation accuracy over the epochs, every seed.
experiment.plot.accuracy_over_epochs().savefig("epochs.svg")

# %% Whether the models look where the fixed two-dimensional encoding looks, and where the rules of the puzzle lie.
attention = experiment.analyze.attention(reference="2d_fixed")
print(attention[["encoding", "cosine", "pairs"]].round(3).to_string(index=False))
truth = experiment.analyze.ground_truth()
print(truth.pivot_table(index="encoding", columns="layer", values="share").round(3))
experiment.plot.attention(length=1).savefig("attention.png")

# %% How far the learned tables are from the fixed one, and what noise on the embeddings does.
distances = experiment.analyze.encodings(reference="2d_fixed")
print(distances[["encoding", "first_block", "all_blocks"]].round(2).to_string(index=False))
noise = experiment.analyze.noise()
print(noise.pivot_table(index="encoding", columns="noise", values="accuracy").round(3))

# %% Beside the numbers that the paper prints.
table = experiment.compare("lst_pe_init/table_2").dropna(subset="measured")
print(table.attrs["heading"])
print(table[["row", "column", "measured", "published"]].round(1).to_string(index=False))

# %% Losses, accuracies and attention maps as NumPy arrays, a file a trial.
print(experiment.export("npz", "arrays", force=True))
print(experiment.report("latin_square.html"))
