#!/bin/sh
# A script as batch systems take it: `stromboli submit examples/jobs/train.sh`. It runs in two pods, and `srun` starts two
# tasks in each. The last lines of options are ours; they can do what Slurm's cannot.
#SBATCH --job-name=train
#SBATCH --nodes=2 --ntasks-per-node=2
#SBATCH --time=00:10:00
#SBATCH --mail-type=END
#STROMBOLI --cpus 0.2
#STROMBOLI --env SEED=7

srun sh -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS, seed $SEED"'
