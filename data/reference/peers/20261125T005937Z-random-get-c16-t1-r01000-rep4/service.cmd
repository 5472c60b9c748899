/usr/sbin/nginx
-p
/work/main/data/work/stores/20261125T005937Z-random-get-c16-t1-r01000-rep4
-c
/work/main/data/work/stores/20261125T005937Z-random-get-c16-t1-r01000-rep4/nginx.conf
