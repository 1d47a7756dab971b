# %% [markdown]
# Figures 3, 9 and F.10 of "Transformers Can Achieve Length Generalization But Not Robustly" (Zhou et al. 2024), scaled down
# to seconds: which way of writing additions is learned, how much of it is luck with the seeds, and which digits are wrong?
# Runs as a script, or cell by cell in an editor that knows `# %%`. It trains on this machine and needs no server:
#
#     python python/examples/decimal_addition.py

# %%
import lengthwise

experiment = lengthwise.run(
    {
        "name": "addition",
        "protocol": "decimal_addition",
        "tasks": [
            {"name": "decimal_addition", "hint_symbols": 5, "label": "reversed_hints"},
            {"name": "decimal_addition", "order": "standard", "index_hints": False, "label": "standard"},
        ],
        "networks": {"name": "causal_decoder", "blocks": 2, "heads": 2, "d_model": 64, "d_ff": 256},
        "encodings": "fire",
        "learning_rates": 2e-3,
        "weight_seeds": [0, 1, 2],
        "data_seeds": [0],
        "training": {
            "steps": 800, "batch_size": 8, "lengths": "1..2", "packing": {"tokens": 64, "answers_only": True},
            "schedule": {"name": "warmup_cosine", "warmup_steps": 30}, "report_every_steps": 10,
        },
        "evaluation": {"lengths": "1..4", "sequences": 100},
    },
    data_dir="runs",
)  # fmt: skip

# %% Exact answers by the number of digits: the mean, and the best and the worst of the seeds.
accuracies = experiment.accuracies()
print(accuracies.groupby(["task", "length"])["accuracy"].agg(["mean", "min", "max"]).unstack("task").round(2))

# %% The best of the seeds in each panel, the others behind it; and where the digits of wrong answers are wrong.
experiment.plot.accuracy_by_length(seeds="best").savefig("best_of_seeds.svg")
experiment.plot.error_places().savefig("error_places.svg")

# %% The same as numbers: wrong answers, and how many of them are wrong first where a carry comes in.
answers = experiment.answer_errors()
answers["wrong"] = [sum(counts[1:]) for counts in answers["answers_by_wrong_digits"]]
print(answers.groupby(["task", "length"])[["answers", "wrong", "first_wrong_with_carry"]].sum())

# %% Beside what the paper says of its own models, with what differs from its protocol.
table = experiment.compare("addition_length_gen/statements")
print(table.attrs["heading"])
print(next(remark for remark in table.attrs["remarks"] if remark.startswith("Not the paper's protocol")))

# %% A table for the paper's source, and everything in one file.
print(experiment.export("latex", "addition.tex", force=True))
print(experiment.report("addition.html"))
