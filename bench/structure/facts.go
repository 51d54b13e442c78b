package main

// tree is what is known of the product's source.
type tree struct {
	folders []*folder
	// files are the numbers of words of documents, by path.
	words map[string]int
	// wire are the fields of messages, as "Message.field = 1 type".
	wire []string
}

// folder is a Go package, or a folder of Python modules.
type folder struct {
	path   string // slash-separated, relative to the root
	python bool
	// doc is the package's comment or docstring. Only a package has one: isPackage.
	doc       string
	isPackage bool
	files     []string
	functions []function
	types     []typeFact
	// arrows lead from one file of the folder to another that it uses.
	arrows []arrow
	// names are what an arrow's file uses of the other; of Go files only.
	names  map[arrow][]string
	places []place
	public []string // what other programs may use
}

type function struct {
	name  string
	lines int
	place string // file:line
}

type typeFact struct {
	name    string
	methods int
	place   string
}

type arrow struct{ from, to string }

// place is where a law is stated.
type place struct {
	law   string
	where string // file:line function
}

// The laws whose statements are counted.
const (
	lawWant      = "want"
	lawLayout    = "layout"
	lawOrder     = "order"
	lawThreshold = "threshold"
	lawCost      = "cost"
)
