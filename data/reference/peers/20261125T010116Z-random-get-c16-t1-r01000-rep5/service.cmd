/work/main/experiments/peers/webdis.sh
/work/main/data/work/stores/20261125T010116Z-random-get-c16-t1-r01000-rep5
