# %% [markdown]
# A corner of Table 1 of "Randomized Positional Encodings Boost Length Generalization of Transformers" (Ruoss et al. 2023),
# scaled down to seconds: which encoding still sorts strings that are longer than all of training's?
# Runs as a script, or cell by cell in an editor that knows `# %%`. It trains on this machine and needs no server:
#
#     python python/examples/randomized_positional_encodings.py

# %%
import matplotlib.pyplot as plt

import lengthwise

experiment = lengthwise.run(
    {
        "name": "randomized",
        "protocol": "randomized_positional_encodings",
        "tasks": "bucket_sort",
        "networks": {"name": "encoder", "blocks": 1, "heads": 4, "d_model": 32},
        "encodings": [
            "none",
            {"name": "sin_cos", "max_position": 128},
            {"name": "sin_cos", "max_position": 128, "randomized": True},
            {"name": "relative", "max_position": 128, "randomized": True},
        ],
        "learning_rates": 1e-3,
        "seeds": "0..2",
        "training": {"steps": 300, "batch_size": 32, "lengths": "1..10", "report_every_steps": 10},
        "evaluation": {
            "lengths": "2..30 step 2", "sequences": 100, "attention_lengths": [10],
            "every_steps": 100, "interval_lengths": [6, 20, 30],
        },
    },
    data_dir="runs",
)  # fmt: skip

# %% Accuracy on the lengths of training and on longer ones: means over the seeds.
results = experiment.results()
print(results[["encoding", "seen_accuracy", "unseen_accuracy", "unseen_accuracy_deviation"]].round(3).to_string(index=False))

# %% A figure as a notebook shows it; savefig writes SVG, PDF or PNG for a paper.
experiment.plot.accuracy_by_length().savefig("accuracy_by_length.svg")

# %% The same on axes of one's own, beside another, in one's own style.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
experiment.plot.accuracy_by_length(ax=left)
experiment.plot.loss(ax=right)
figure.savefig("accuracy_and_loss.png")

# %% More than luck with the seeds? Paired t-tests, seed by seed.
tests = experiment.analyze.t_test(reference="sin_cos")
print(tests.attrs["caption"])
print(tests[["encoding", "difference", "difference_low", "difference_high", "t", "p_value"]].round(3).to_string(index=False))

# %% How many seeds have half of the symbols right at lengths not seen; the column "seconds" says when each had.
seconds = experiment.seconds_to_accuracy(0.5)
print(seconds.groupby("encoding")["seconds"].count().to_dict())

# %% Beside the numbers that the paper prints, with what differs from its protocol.
table = experiment.compare("randomized_pe/table_1").dropna(subset="measured")
print(table.attrs["heading"])
print(table[["task", "encoding", "measured", "published", "difference"]].round(1).to_string(index=False))
print(next(remark for remark in table.attrs["remarks"] if remark.startswith("Not the paper's protocol")))

# %% For TensorBoard, and for a colleague who has neither the server nor the program.
print(experiment.export("tensorboard", "tensorboard", force=True))
print(experiment.report("randomized.html"))
