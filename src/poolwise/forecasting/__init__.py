"""Forecasts of start times: distributions over many sampled futures, and backtests of their accuracy on logs."""
