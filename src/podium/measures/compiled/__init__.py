"""The compiled side of an evaluation: ranking, ties, and the loop that calls every measure."""
