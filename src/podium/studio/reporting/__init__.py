"""What dashboards show: figures of queries, summaries, pace and flags."""
