"""Why a job waits, as one value: made on demand for one job from what its cycle left behind."""
