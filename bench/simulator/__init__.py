"""The simulator against published results: GPU packing, backfill on traces, and a month of jobs."""
