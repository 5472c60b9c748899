/work/main/experiments/peers/webdis.sh
/work/main/data/work/stores/20261125T005920Z-random-get-c16-t1-r01000-rep4
