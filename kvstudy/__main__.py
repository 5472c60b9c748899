from kvstudy.cli import main

main()
