/usr/sbin/nginx
-p
/work/main/data/work/stores/20261125T005953Z-repeated-put-c16-t1-r01000-rep4
-c
/work/main/data/work/stores/20261125T005953Z-repeated-put-c16-t1-r01000-rep4/nginx.conf
