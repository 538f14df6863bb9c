

main(patience=2)
