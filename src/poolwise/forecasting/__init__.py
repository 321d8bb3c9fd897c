"""Forecasts of job starts: distributions from replayed scenarios, and backtests of their accuracy on a log."""
