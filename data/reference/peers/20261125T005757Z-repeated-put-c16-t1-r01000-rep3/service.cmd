/work/main/experiments/peers/webdis.sh
/work/main/data/work/stores/20261125T005757Z-repeated-put-c16-t1-r01000-rep3
