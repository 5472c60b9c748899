/usr/sbin/nginx
-p
/work/main/data/work/stores/20261125T005642Z-random-get-c16-t1-r01000-rep3
-c
/work/main/data/work/stores/20261125T005642Z-random-get-c16-t1-r01000-rep3/nginx.conf
