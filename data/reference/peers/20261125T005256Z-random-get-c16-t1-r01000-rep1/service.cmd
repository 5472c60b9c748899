/work/main/experiments/peers/webdis.sh
/work/main/data/work/stores/20261125T005256Z-random-get-c16-t1-r01000-rep1
