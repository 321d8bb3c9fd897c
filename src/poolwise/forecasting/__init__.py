"""When jobs will start: distributions from many replays of what may come, and how good they were on a log."""
