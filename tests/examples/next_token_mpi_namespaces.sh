#!/usr/bin/env bash
# Two ranks in two network namespaces, which a virtual cable joins: as two machines, with names and addresses of their
# own, that have nothing but TCP between them. Where such namespaces cannot be made, the test is skipped.
# shellcheck source=tests/examples/mpi.sh
source "$(dirname "$(readlink -f "$0")")/mpi.sh"

skip() {
  echo "SKIPPED: no two network namespaces here: $*" >&2
  exit 77
}

command -v ip >/dev/null || skip "there is no command ip"
if ((EUID != 0)) && [[ -z ${INSIDE-} ]]; then
  # In a user namespace of one's own, one is root.
  unshare --user --map-root-user --net --mount true 2>/dev/null || skip "user $EUID may not make them"
  INSIDE=yes exec unshare --user --map-root-user --net --mount bash -c 'mount -t tmpfs tmpfs /run && ip link set lo up && exec "$@"' _ \
    "${launcher%/*}/examples/next_token_mpi_namespaces.sh" "$program"
fi
first=prenorm-$$-1 second=prenorm-$$-2
remove() {
  ip netns del "$first" 2>/dev/null || true
  ip netns del "$second" 2>/dev/null || true
  cleanup
}
trap remove EXIT
ip netns add "$first" 2>why || skip "$(tail -n 1 why)"
ip netns add "$second"
ip -n "$first" link add cable type veth peer name cable netns "$second" 2>why || skip "$(tail -n 1 why)"
ip -n "$first" address add 10.77.0.1/24 dev cable
ip -n "$second" address add 10.77.0.2/24 dev cable
for name in "$first" "$second"; do
  ip -n "$name" link set lo up
  ip -n "$name" link set cable up
done

# What mpirun uses in place of ssh: agent HOST COMMAND...
cat >agent <<END
#!/usr/bin/env bash
shift
exec ip netns exec $second unshare --uts bash -c 'hostname second && exec bash -c "\$*"' _ "\$@"
END
chmod +x agent

# two_machines PROGRAM ARGS...: a rank in each namespace.
two_machines() {
  expect_code 0 ip netns exec "$first" unshare --uts bash -c 'hostname first && exec "$@"' _ \
    "$launcher" 2 --host 10.77.0.1:1,10.77.0.2:1 --mca plm_rsh_agent "$PWD/agent" --mca btl tcp,self \
    --mca btl_tcp_if_include cable --mca oob_tcp_if_include cable "$@"
}

two_machines hostname
[[ $(sort out.txt | paste -sd' ') == 'first second' ]] || fail "not on two machines: $(cat out.txt err.txt)"

options=(--depth 2 --batch 7 --steps 20 --threads 1)
two_machines "$program" "${options[@]}" --checkpoint far --log far.csv
expect_output ', 2 ranks of 1 thread$'
sent=$(ip netns exec "$first" cat /sys/class/net/cable/statistics/tx_bytes)
ranks 2 "${options[@]}" --checkpoint near --log near.csv
same near far
same_losses near.csv far.csv
# The gradients went through the cable, each step.
parameters=$(sed -nE 's/^TinyLM: ([0-9]+) parameters.*/\1/p' out.txt)
((sent > 4 * parameters * 20)) || fail "only $sent bytes went from one to the other for $parameters parameters"
echo "two network namespaces: $sent bytes sent; checkpoint and losses are those of two ranks on one machine"
