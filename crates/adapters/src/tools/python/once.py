

# The answer gets a descriptor of its own, not inherited by children; what the tool prints goes to stderr.
_answer = os.dup(1)
os.dup2(2, 1)
main(_answer, patience=2)
