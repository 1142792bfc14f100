"""The search for inputs on which head does more than base: families of inputs, how they are proposed and changed, and what is kept."""
