#!/usr/bin/env bash
#SBATCH --job-name=keras-dml
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@120
# `sbatch slurm.sh`. One worker per GPU, found through Slurm: no TF_CONFIG.
#
# `--signal` sends SIGTERM 120 seconds before the time is up: the run saves
# itself and ends with 143. Submit the script again, and it goes on.
set -u

for start in $(seq 1 20); do
  # One worker that ends with an error takes the others of the step with it.
  srun --kill-on-bad-exit=1 \
    keras-dml fit /data/shoes --strategy multi_worker \
    --output /shared/runs/shoes --resume
  code=$?
  case $code in
    0 | 2) exit $code ;;
    143) exit 0 ;; # Out of time, and saved.
  esac
  echo "A worker ended with code $code (start $start)." >&2
done
exit 1
