/usr/sbin/nginx
-p
/work/main/data/work/stores/20261125T005535Z-random-get-c16-t1-r01000-rep2
-c
/work/main/data/work/stores/20261125T005535Z-random-get-c16-t1-r01000-rep2/nginx.conf
