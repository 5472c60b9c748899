/usr/sbin/nginx
-p
/work/main/data/work/stores/20261125T010051Z-repeated-put-c16-t1-r01000-rep5
-c
/work/main/data/work/stores/20261125T010051Z-repeated-put-c16-t1-r01000-rep5/nginx.conf
