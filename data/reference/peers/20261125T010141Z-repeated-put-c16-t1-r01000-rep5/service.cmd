/work/main/experiments/peers/webdis.sh
/work/main/data/work/stores/20261125T010141Z-repeated-put-c16-t1-r01000-rep5
