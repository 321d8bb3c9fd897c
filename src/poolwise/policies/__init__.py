"""The parts that list schedulers are put together from: queue orders, backfills, placements. One algorithm per file."""
