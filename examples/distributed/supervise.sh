#!/usr/bin/env bash
# Trains with several workers on this machine and starts all of them again
# whenever one is lost. On several machines run one such loop on each, with its
# own TF_CONFIG.
#
#   examples/distributed/supervise.sh 2 digits --output runs/two
#
# The first argument is the number of workers, the rest goes to `keras-dml fit`.
set -u
count=$1
shift
first_port=${FIRST_PORT:-29500}
most_starts=${MOST_STARTS:-20}

addresses=""
for index in $(seq 0 $((count - 1))); do
  addresses+="${addresses:+, }\"127.0.0.1:$((first_port + index))\""
done

workers=()
stop_workers() {
  kill -TERM "${workers[@]}" 2>/dev/null
}
stopped=""
trap 'stopped=yes; stop_workers' TERM INT

for start in $(seq 1 "$most_starts"); do
  workers=()
  for index in $(seq 0 $((count - 1))); do
    TF_CONFIG="{\"cluster\": {\"worker\": [$addresses]}, \
\"task\": {\"type\": \"worker\", \"index\": $index}}" \
      keras-dml fit "$@" --strategy multi_worker --resume &
    workers+=($!)
  done

  # The first to end with an error decides; the others cannot go on without it.
  code=0
  left=("${workers[@]}")
  while [ "$code" -eq 0 ] && [ "${#left[@]}" -gt 0 ]; do
    sleep 1
    running=()
    for worker in "${left[@]}"; do
      if kill -0 "$worker" 2>/dev/null; then
        running+=("$worker")
      else
        wait "$worker" || code=$?
      fi
    done
    # Older shells take an empty list for an unset one.
    left=(${running[@]+"${running[@]}"})
  done
  if [ "$code" -ne 0 ]; then
    # A moment to end by themselves, then for good: one may be frozen. When
    # stopped, as long as it takes to end a step and save it.
    seconds=10
    [ -n "$stopped" ] && seconds=120
    stop_workers
    for _ in $(seq 1 "$seconds"); do
      kill -0 "${workers[@]}" 2>/dev/null || break
      sleep 1
    done
    if kill -KILL "${workers[@]}" 2>/dev/null && [ -n "$stopped" ]; then
      echo "A worker did not end within $seconds seconds." >&2
      exit 1
    fi
  fi
  wait
  case $code in
    0) exit 0 ;;
    2) exit 2 ;; # The caller's mistake: starting again does not help.
  esac
  [ -n "$stopped" ] && exit 143
  echo "A worker ended with code $code (start $start)." >&2
done
exit 1
