/usr/sbin/nginx
-p
/work/main/data/work/stores/20261125T005304Z-random-get-c16-t1-r01000-rep1
-c
/work/main/data/work/stores/20261125T005304Z-random-get-c16-t1-r01000-rep1/nginx.conf
