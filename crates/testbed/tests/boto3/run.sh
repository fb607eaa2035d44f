#!/bin/sh
# Drives the simulated cloud with boto3, a client that nobody here wrote.
#
#   run.sh CLOUD_EXAMPLE PYTHON_VENV
#
# CLOUD_EXAMPLE is the built example `cloud` (target/debug/examples/cloud); PYTHON_VENV is a virtual
# environment with requirements.txt installed. Ends with the tests' own exit code.
set -eu

if [ "$#" -ne 2 ]; then
    echo "usage: $0 CLOUD_EXAMPLE PYTHON_VENV" >&2
    exit 2
fi
cloud=$1
python=$2/bin/python
here=$(cd "$(dirname "$0")" && pwd)

[ -x "$cloud" ] || { echo "$cloud is not a program; build it with: cargo build -p machinist-testbed --example cloud" >&2; exit 2; }
[ -x "$python" ] || { echo "$python is not a program; make it with: python3 -m venv $2 && $2/bin/pip install -r $here/requirements.txt" >&2; exit 2; }

work=$(mktemp -d)
server=
# The cloud ends when its stdin closes, and the trap closes it however this script ends.
trap 'exec 9>&-; [ -z "$server" ] || wait "$server" || true; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkfifo "$work/stdin"
"$cloud" --fast <"$work/stdin" >"$work/stdout" 2>"$work/stderr" &
server=$!
exec 9>"$work/stdin"

waited=0
while ! [ -s "$work/stdout" ]; do
    if ! kill -0 "$server" 2>/dev/null || [ "$waited" -ge 300 ]; then
        echo "the simulated cloud did not start:" >&2
        cat "$work/stderr" >&2
        exit 1
    fi
    sleep 0.1
    waited=$((waited + 1))
done

value() {
    "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$work/stdout" "$1"
}
EC2_ENDPOINT=$(value ec2Endpoint)
EC2_ENDPOINT_TLS=$(value ec2EndpointTls)
EC2_CA_FILE=$(value ec2CaFile)
CLOUD_ADMIN=$(value cloudAdmin)
export EC2_ENDPOINT EC2_ENDPOINT_TLS EC2_CA_FILE CLOUD_ADMIN

# The closed descriptor keeps the tests from holding the cloud's stdin open.
status=0
"$python" -B -m unittest discover --start-directory "$here" --pattern 'test_*.py' 9>&- || status=$?
if [ "$status" -ne 0 ]; then
    echo "boto3 and the simulated cloud disagree (exit $status); the cloud said:" >&2
    cat "$work/stderr" >&2
fi
exit "$status"
