/** Where `holdfast dev` keeps its data, and where the other commands look for it. */
export const defaultDataDir = ".holdfast";
