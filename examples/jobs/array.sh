#!/bin/sh
# A parameter sweep: a pod for each index, two at a time. `stromboli submit --wait examples/jobs/array.sh`
#SBATCH --job-name=grid --array=1-5:2%2 --time=5
#STROMBOLI --cpus 0.2

echo "rate 0.$SLURM_ARRAY_TASK_ID, index $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"
